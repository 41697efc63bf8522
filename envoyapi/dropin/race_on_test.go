// SPDX-License-Identifier: Apache-2.0

//go:build race

package dropin_test

const raceEnabled = true
