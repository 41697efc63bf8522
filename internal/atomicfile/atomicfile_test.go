// SPDX-License-Identifier: Apache-2.0

package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/metehq/mete/internal/atomicfile"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	broken := errors.New("broken")
	for _, tt := range []struct {
		text string
		err  error
		want string
	}{{"one", nil, "one"}, {"half", broken, "one"}, {"two", nil, "two"}} {
		next, err := os.CreateTemp(dir, "next")
		if err != nil {
			t.Fatal(err)
		}
		err = atomicfile.Replace(path, next, func(w io.Writer) error {
			io.WriteString(w, tt.text)
			return tt.err
		})
		if data, _ := os.ReadFile(path); !errors.Is(err, tt.err) || string(data) != tt.want {
			t.Errorf("%s: got %q, %v; want %q, %v", tt.text, data, err, tt.want, tt.err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s: %d files, want only the replaced one", tt.text, len(entries))
		}
	}
	next, err := os.CreateTemp(dir, "next")
	if err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(dir, next, func(io.Writer) error { return nil }); err == nil {
		t.Error("a directory was replaced")
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"one", "two"} {
		if err := atomicfile.Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); string(data) != text {
			t.Errorf("got %q, %v; want %q", data, err, text)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v; want only the written one", len(entries), err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "none", "file"), nil, 0o600); err == nil {
		t.Error("a file was written to a directory that does not exist")
	}
}
