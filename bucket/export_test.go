// SPDX-License-Identifier: Apache-2.0

package bucket

// ClosestBelow is tested against all fractions.
var ClosestBelow = closestBelow
