// SPDX-License-Identifier: Apache-2.0

package sharedkey

import (
	"context"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// SetPolicy replaces the limiter's policy by m after check has accepted the key that m
// will have. The key of the present policy has been checked, and is not checked again: a
// policy can be replaced while the store does not answer.
func SetPolicy(l *mete.Limiter, m *policy.Matcher, check func(ctx context.Context, id string) error) error {
	if m == nil {
		return l.SetPolicy(m) // it has the error for this
	}
	if m.NeedsHashKey() {
		key, err := l.HashKey()
		if err != nil {
			return err
		}
		m = m.WithHashKey(key)
	}
	if id := m.HashKeyID(); id != l.Policy().HashKeyID() {
		if err := check(context.Background(), id); err != nil {
			return err
		}
	}
	return l.SetPolicy(m)
}
