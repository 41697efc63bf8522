// SPDX-License-Identifier: Apache-2.0

package server

import "context"

// FailMain closes the main address under a running server.
func (s *Server) FailMain() {
	for _, c := range s.components {
		if c.Name == "listen" {
			c.Stop(context.Background())
		}
	}
}
