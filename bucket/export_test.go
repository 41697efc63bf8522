// SPDX-License-Identifier: Apache-2.0

package bucket

// ClosestBelow is tested against all fractions.
var ClosestBelow = closestBelow

// SaturatingAdd has two bounds that no decision reaches with an equal sum.
var SaturatingAdd = saturatingAdd
