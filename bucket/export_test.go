// SPDX-License-Identifier: Apache-2.0

package bucket

// ClosestBelow is tested against every fraction there is.
var ClosestBelow = closestBelow
