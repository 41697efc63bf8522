// SPDX-License-Identifier: Apache-2.0

package admintoken_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/metehq/mete/cmd/internal/admintoken"
)

func mustMake(t *testing.T, address string) admintoken.File {
	t.Helper()
	f, err := admintoken.Create(address)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A token is found for the address that it was made for, and for no other.
func TestFind(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	one, other, six := mustMake(t, "127.0.0.1:8081"), mustMake(t, "127.0.0.2:8081"), mustMake(t, "[::1]:9000")
	for _, tt := range []struct {
		address, token, at string
	}{
		{"127.0.0.1:8081", one.Token, "127.0.0.1:8081"},
		{"127.0.0.2:8081", other.Token, "127.0.0.2:8081"},
		{"[::ffff:127.0.0.1]:8081", one.Token, "[::ffff:127.0.0.1]:8081"},
		{"localhost:8081", one.Token, "127.0.0.1:8081"},
		{"[::1]:9000", six.Token, "[::1]:9000"},
		{"localhost:9000", six.Token, "[::1]:9000"},
		{"[::1]:8081", "", ""},
		{"127.0.0.3:8081", "", ""},
		{"127.0.0.1:9000", "", ""},
		{"192.0.2.1:8081", "", ""},
		{"mete.example:8081", "", ""},
		{"localhost.example:8081", "", ""},
		{"localhost:../../8081", "", ""},
		{"127.0.0.1", "", ""},
		{"", "", ""},
	} {
		token, at, ok := admintoken.Find(tt.address)
		if token != tt.token || ok != (tt.token != "") || ok && at.String() != tt.at {
			t.Errorf("Find(%q) = %q, %v, %v; want %q at %s", tt.address, token, at, ok, tt.token, tt.at)
		}
	}
}

func TestMake(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	before := mustMake(t, "127.0.0.1:8081")
	f := mustMake(t, "127.0.0.1:8081")
	if f.Path != before.Path || f.Token == before.Token || len(f.Token) < 26 {
		t.Errorf("made %+v, then %+v; want another token in the same place", before, f)
	}
	for path, want := range map[string]os.FileMode{f.Path: 0o600, filepath.Dir(f.Path): os.ModeDir | 0o700} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	before.Remove()
	if token, _, _ := admintoken.Find("127.0.0.1:8081"); token != f.Token {
		t.Errorf("the server that listened before has removed the token of the next: found %q", token)
	}
	f.Remove()
	if left, err := os.ReadDir(filepath.Dir(f.Path)); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v; want nothing", left, err)
	}
}

// Make fails without a partial file if a directory has the name of the token file.
func TestMake_Fails(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	f := mustMake(t, "127.0.0.1:8081")
	f.Remove()
	if err := os.MkdirAll(filepath.Join(f.Path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := admintoken.Create("127.0.0.1:8081"); err == nil || got != (admintoken.File{}) {
		t.Errorf("Make = %+v, %v; want an error, and no file", got, err)
	}
	if left, err := os.ReadDir(filepath.Dir(f.Path)); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v; want the directory alone", left, err)
	}
	if _, _, ok := admintoken.Find("127.0.0.1:8081"); ok {
		t.Error("a directory was taken for a token")
	}
	if got, err := admintoken.Create("nonsense"); err == nil {
		t.Errorf("Make(nonsense) = %+v, want an error", got)
	}
}

// Make replaces a symbolic link instead of writing through it.
func TestMake_Symlink(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	f := mustMake(t, "127.0.0.1:8081")
	f.Remove()
	elsewhere := filepath.Join(dir, "elsewhere")
	if err := os.WriteFile(elsewhere, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, f.Path); err != nil {
		t.Fatal(err)
	}
	made := mustMake(t, "127.0.0.1:8081")
	if text, err := os.ReadFile(elsewhere); err != nil || string(text) != "mine" {
		t.Errorf("the file that a link showed to has %q, %v", text, err)
	}
	if info, err := os.Lstat(made.Path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the token's file: %v, %v; want a file of mode 0600", info, err)
	}
}
