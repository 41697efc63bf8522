// SPDX-License-Identifier: Apache-2.0

//go:build race

package httplimit_test

const raceEnabled = true
