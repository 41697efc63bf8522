// SPDX-License-Identifier: Apache-2.0

package server

// FailMain closes the main address under a running server.
func (s *Server) FailMain() { s.main.listener.Close() }
