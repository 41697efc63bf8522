// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package proctest

import (
	"os"
	"os/exec"
)

func separate(*exec.Cmd) {}

func interrupt(p *os.Process) error { return p.Kill() }

func kill(p *os.Process) { _ = p.Kill() }
