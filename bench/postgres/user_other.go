// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "syscall"

// serverUser returns how to run a server: as who we are.
func serverUser(string) (*syscall.SysProcAttr, error) { return nil, nil }
