// SPDX-License-Identifier: Apache-2.0

package smallfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/smallfile"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := smallfile.Read(path, 5); string(data) != "12345" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
	if _, err := smallfile.Read(path, 4); err == nil || err.Error() != path+": larger than 4 bytes" {
		t.Errorf("a large file: %v", err)
	}
	if _, err := smallfile.Authorities(path); err == nil || !strings.HasSuffix(err.Error(), "has no certificate in PEM") {
		t.Errorf("no certificate: %v", err)
	}
	for _, read := range []func() error{
		func() error { _, err := smallfile.Read(path+".none", 5); return err },
		func() error { _, err := smallfile.Authorities(path + ".none"); return err },
	} {
		if err := read(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no file: %v", err)
		}
	}
}
