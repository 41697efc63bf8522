// SPDX-License-Identifier: Apache-2.0

// Package git runs git commands.
package git

import (
	"bytes"
	"fmt"
	"os/exec"
)

// Run returns the output of a git command in dir.
func Run(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}
