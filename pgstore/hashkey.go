// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"fmt"

	"github.com/metehq/mete/internal/sharedkey"
)

// CheckHashKey reports whether the processes that share this schema and prefix hash parts
// of bucket keys with the key that has this identifier, of policy.Matcher.HashKeyID. The
// first process that asks determines it: the identifier is the document hash-key. The
// error for another key wraps policy.ErrHashKey. An empty identifier is always right.
//
// [mete.New] asks, and so does [NewLimiter].
func (s *Store) CheckHashKey(ctx context.Context, id string) error {
	remove := fmt.Sprintf("delete the row with the name %q and the prefix %q from the table %q.document",
		sharedkey.Document, s.config.Prefix, s.config.Schema)
	if err := sharedkey.Check(ctx, s, id, remove); err != nil {
		return fmt.Errorf("pgstore: check hash key: %w", err)
	}
	return nil
}
