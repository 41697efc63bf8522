// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/storetest"
)

var formats = flag.String("formats", "", "write the stored formats of this `version`, such as dev or v0.1.0, to testdata/formats")

// Files of earlier versions are restored, and their buckets decide as before.
func TestFormats(t *testing.T) {
	const name = "buckets"
	storetest.Formats{
		Dir: "testdata/formats", Write: *formats,
		Open: func(t *testing.T, now func() bucket.Instant) mete.Store { return mustNew(t, memstore.Config{Now: now}) },
		Save: func(t *testing.T, s mete.Store, dir string) {
			if err := s.(*memstore.Store).Save(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		},
		Load: func(t *testing.T, dir string, now func() bucket.Instant) mete.Store {
			s, err := memstore.Restore(filepath.Join(dir, name), memstore.Config{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}.Run(t)
}
