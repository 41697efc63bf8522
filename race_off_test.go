// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mete_test

const raceEnabled = false
