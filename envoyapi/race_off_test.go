// SPDX-License-Identifier: Apache-2.0

//go:build !race

package envoyapi_test

const raceEnabled = false
