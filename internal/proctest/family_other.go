// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package proctest

import (
	"errors"
	"os"
	"os/exec"
)

var stopSignals = [...]os.Signal{os.Kill, os.Kill, os.Kill}

func pauseFamily(int) error { return errors.ErrUnsupported }

func resumeFamily(int) error { return errors.ErrUnsupported }

func killFamily(int) error { return errors.ErrUnsupported }

func removeSharedMemory(string) {}

func demote(*exec.Cmd) {}

func chown(string) error { return nil }
