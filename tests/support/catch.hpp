// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Catch2 of either generation: one header in version 2, several in version 3.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
