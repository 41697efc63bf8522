// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"embed"
	"path"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var files embed.FS

type migration struct {
	version int
	name    string
	text    string // with {schema} in it
}

var migrations = readMigrations()

// readMigrations panics if a file name is invalid, which tests would detect.
func readMigrations() []migration {
	const dir = "migrations"
	entries, err := files.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	var all []migration
	for _, e := range entries {
		number, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			panic(err)
		}
		text, err := files.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			panic(err)
		}
		all = append(all, migration{version, name, string(text)})
	}
	return all
}
