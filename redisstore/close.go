// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
)

// Close gives leases back, tries once more what else is to be given back, and
// waits for the calls on the wire, each of which takes no longer than
// [Config.Timeout]. It does not close the client. What is asked later fails; a
// second Close does nothing.
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
