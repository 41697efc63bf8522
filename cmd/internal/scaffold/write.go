// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/atomicfile"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
	"github.com/metehq/mete/policyyaml"
)

// verify validates the files like mete check and mete serve, and runs the tests of the policy, before Run writes
// anything.
func verify(ctx context.Context, files []file) error {
	for _, f := range files {
		var err error
		if f.name == PolicyFile {
			err = verifyPolicy(ctx, f.text)
		} else {
			err = verifySettings(f.text)
		}
		if err != nil {
			return fmt.Errorf("no file was written: %s: %w", f.name, err)
		}
	}
	return nil
}

func verifyPolicy(ctx context.Context, text string) error {
	m, err := policyyaml.Parse(PolicyFile, []byte(text), policy.Options{HashKey: []byte("mete init")})
	if err != nil {
		return err
	}
	tests, _, err := policytest.Read(m)
	if err != nil {
		return err
	}
	report, err := policytest.Run(ctx, m, tests)
	if err != nil {
		return err
	}
	for _, r := range report.Results {
		for _, f := range r.Failures {
			return fmt.Errorf("the test %q fails: %s", r.Test.Name, f)
		}
	}
	return nil
}

func verifySettings(text string) error {
	dir, err := os.MkdirTemp("", "mete-init-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, SettingsFile)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	_, _, err = config.Load(path, nil, nil)
	return err
}

// write writes all files to dir, or none.
func write(dir string, files []file, force bool) (err error) {
	if dir == "" {
		dir = "."
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var made []string
	defer func() {
		if err != nil {
			for _, path := range made {
				err = errors.Join(err, os.Remove(path))
			}
		}
	}()
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if !force {
			// The empty file reserves the name until the contents replace it.
			reserved, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return &ExistsError{[]string{path}}
			}
			if err != nil {
				return err
			}
			reserved.Close()
			made = append(made, path)
		}
	}
	for _, f := range files {
		mode := fs.FileMode(0o644)
		if f.secret {
			mode = 0o600
		}
		if err := atomicfile.Write(filepath.Join(dir, f.name), []byte(f.text), mode); err != nil {
			return err
		}
	}
	return nil
}
