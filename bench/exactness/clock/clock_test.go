// SPDX-License-Identifier: Apache-2.0

//go:build linux

package clock_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bench/exactness/clock"
)

func TestMain(m *testing.M) {
	code := m.Run()
	clock.Clean()
	os.Exit(code)
}

// printer prints the wall clock in seconds.
const printer = `package main

import "time"

func main() { println(time.Now().Unix()) }
`

func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "printer")
	if err := os.WriteFile(source, []byte(printer), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := clock.BuildGo(dir, source, program, false); err != nil {
		t.Fatal(err)
	}
	c := clock.New(t)
	for _, shift := range []time.Duration{0, -time.Hour, 1000 * time.Hour} {
		c.Set(shift)
		for _, cmd := range []*exec.Cmd{exec.Command(program), exec.Command("date", "+%s")} {
			cmd.Env = append(os.Environ(), c.Environ()...)
			before := time.Now().Unix()
			out, err := cmd.CombinedOutput()
			after := time.Now().Unix()
			if err != nil {
				t.Fatalf("%s: %v", cmd.Path, err)
			}
			got, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
			got -= int64(shift.Seconds())
			if err != nil || got < before || got > after {
				t.Errorf("%s with a clock %v off: %s, %v, want the time of now", cmd.Path, shift, out, err)
			}
		}
	}
}
