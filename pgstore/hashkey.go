// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"fmt"

	"github.com/metehq/mete/internal/sharedkey"
)

// CheckHashKey reports whether the processes that share this schema and prefix use the same hash key for bucket
// keys. The parameter id is the key's identifier: see policy.Matcher.HashKeyID. The first caller stores its
// identifier as the document hash-key. The error for a different key wraps policy.ErrHashKey. An empty identifier
// is always accepted.
//
// [mete.New] and [NewLimiter] call CheckHashKey.
func (s *Store) CheckHashKey(ctx context.Context, id string) error {
	remove := fmt.Sprintf("delete the row with the name %q and the prefix %q from the table %q.document",
		sharedkey.Document, s.config.Prefix, s.config.Schema)
	if err := sharedkey.Check(ctx, s, id, remove); err != nil {
		return fmt.Errorf("pgstore: check hash key: %w", err)
	}
	return nil
}
