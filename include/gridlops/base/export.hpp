// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Marks what the shared library exports; everything else is compiled with hidden visibility.
#define GRIDLOPS_EXPORT [[gnu::visibility("default")]]
