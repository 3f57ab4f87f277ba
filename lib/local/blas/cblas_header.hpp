// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// MKL calls its header by a name of its own.
#if __has_include(<cblas.h>)
#include <cblas.h>
#else
#include <mkl_cblas.h>
#endif
