// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	_ "embed" // of the script
	"fmt"
	"strconv"
	"strings"

	"github.com/metehq/mete/store"
	"github.com/redis/rueidis"
)

//go:embed document.lua
var documentScript string

var setDocument = rueidis.NewLuaScript(documentScript)

var _ store.Documents = (*Store)(nil)

func (s *Store) documentKey(name string) string { return s.config.Prefix + "doc:" + name }

// Document implements [store.Documents]. It reads the whole document, even if known is its revision.
func (s *Store) Document(ctx context.Context, name string, known int64) ([]byte, int64, error) {
	if err := store.CheckDocument(name, nil); err != nil {
		return nil, 0, fmt.Errorf("redisstore: document: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	text, err := s.client.Do(ctx, s.client.B().Get().Key(s.documentKey(name)).Build()).ToString()
	switch {
	case rueidis.IsRedisNil(err):
		return nil, 0, nil
	case err != nil:
		return nil, 0, withOp(newStoreError(err), "document")
	}
	head, data, found := strings.Cut(text, "\n")
	revision, err := strconv.ParseInt(head, 10, 64)
	if !found || err != nil || revision <= 0 {
		return nil, 0, withOp(newAnswerError("the document has no valid revision", head), "document")
	}
	if revision == known {
		return nil, revision, nil
	}
	return []byte(data), revision, nil
}

// SetDocument implements [store.Documents]. It stores the document at {prefix}doc:{name}, without expiry. The
// document is as durable as Redis: a restart without persistence, an eviction or a failover can lose it.
func (s *Store) SetDocument(ctx context.Context, name string, data []byte, revision int64) (int64, error) {
	if err := store.CheckDocument(name, data); err != nil {
		return 0, fmt.Errorf("redisstore: set document: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	args := []string{strconv.FormatInt(revision, 10), string(data)}
	text, err := setDocument.Exec(ctx, s.client, []string{s.documentKey(name)}, args).ToString()
	if err != nil {
		return 0, withOp(newStoreError(err), "set document")
	}
	next, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return 0, withOp(newAnswerError("invalid revision", text), "set document")
	case next == 0:
		return 0, fmt.Errorf("redisstore: set document: %w", store.ErrRevision)
	}
	return next, nil
}
