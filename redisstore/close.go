// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
)

// Close returns leases, tries pending refunds once more, and waits for the calls in flight, each for
// [Config.Timeout] at most. It does not close the client. Later calls on the store fail. A second Close is a
// no-op.
func (s *Store) Close() error {
	var err error
	s.end.Do(func() {
		if s.leases != nil {
			ctx, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
			defer cancel()
			if err = s.leases.Close(ctx); err != nil {
				err = fmt.Errorf("redisstore: %w", err)
			}
		}
		close(s.ending)
		s.undo.idle.Wait()
		s.lanes.Close()
	})
	return err
}
