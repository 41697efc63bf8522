// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

// postgresDir is the directory of the PostgreSQL programs, all of one version: the one in PATH, or the newest
// in Debian's own directories. It is empty if there is none.
var postgresDir = sync.OnceValue(func() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	dirs = slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := exec.LookPath(filepath.Join(dir, "initdb"))
		return err != nil
	})
	if len(dirs) == 0 {
		return ""
	}
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		return n
	}
	return slices.MaxFunc(dirs, func(a, b string) int { return cmp.Compare(version(a), version(b)) })
})

// findPostgres returns the path of a PostgreSQL program. The error contains the name of the Debian package.
func findPostgres(program, debianPackage string) (string, error) {
	if dir := postgresDir(); dir != "" {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%s not found: run make setup, or apt-get install %s", program, debianPackage)
}
