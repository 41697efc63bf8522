// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
)

// Build builds the package at a path relative to this module, as a program in dir, and returns its path.
func Build(ctx context.Context, dir, name, from string) (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("this program has no build information")
	}
	program := filepath.Join(dir, name)
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, path.Join(info.Main.Path, from)).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return program, nil
}
