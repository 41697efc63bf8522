// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "syscall"

// serverUser returns nil: the server runs as the current user.
func serverUser(string) (*syscall.SysProcAttr, error) { return nil, nil }
