// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/metehq/mete/internal/atomicfile"
	"github.com/metehq/mete/store"
)

// A documentFile stores the documents of a memory store in files named FILE.NAME next to its bucket file.
// SetDocument returns after the document is on disk. Only one process uses the files.
type documentFile struct {
	stem string

	mu     sync.Mutex // guards the field below and the files
	byName map[string]fileDocument
}

type fileDocument struct {
	data     []byte // never modified
	revision int64  // counted from the start of the process
}

// newDocumentFile returns a documentFile, which reads its files on first use.
func newDocumentFile(stem string) *documentFile {
	return &documentFile{stem: stem, byName: map[string]fileDocument{}}
}

func (f *documentFile) Document(_ context.Context, name string, known int64) ([]byte, int64, error) {
	if err := store.CheckDocument(name, nil); err != nil {
		return nil, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.document(name)
	if err != nil || d.revision == known {
		return nil, d.revision, err
	}
	return bytes.Clone(d.data), d.revision, nil
}

func (f *documentFile) SetDocument(_ context.Context, name string, data []byte, revision int64) (int64, error) {
	if err := store.CheckDocument(name, data); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.document(name)
	switch {
	case err != nil:
		return 0, err
	case d.revision != revision:
		return 0, store.ErrRevision
	}
	if err := replaceFile(f.stem+"."+name, data); err != nil {
		return 0, err
	}
	d = fileDocument{append([]byte{}, data...), max(revision+1, time.Now().UnixMicro())}
	f.byName[name] = d
	return d.revision, nil
}

// document returns a document and reads its file the first time. The caller holds mu.
func (f *documentFile) document(name string) (fileDocument, error) {
	if d, known := f.byName[name]; known {
		return d, nil
	}
	file, err := os.Open(f.stem + "." + name)
	if errors.Is(err, fs.ErrNotExist) {
		return fileDocument{}, nil
	}
	if err != nil {
		return fileDocument{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, store.MaxDocumentBytes+1))
	if err == nil {
		err = store.CheckDocument(name, data)
	}
	if err != nil {
		return fileDocument{}, fmt.Errorf("%s: %w", file.Name(), err)
	}
	d := fileDocument{data, time.Now().UnixMicro()}
	f.byName[name] = d
	return d, nil
}

// replaceFile replaces the file at path atomically. Only its owner can read it.
func replaceFile(path string, data []byte) error {
	next, err := os.OpenFile(path+".next", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, next, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
