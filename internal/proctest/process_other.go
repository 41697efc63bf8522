// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package proctest

import (
	"errors"
	"os"
	"os/exec"
)

func setProcessGroup(*exec.Cmd) {}

func interrupt(p *os.Process) error { return p.Kill() }

func pause(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }

func kill(p *os.Process) { _ = p.Kill() }
