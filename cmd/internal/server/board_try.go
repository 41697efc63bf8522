// SPDX-License-Identifier: Apache-2.0

package server

// try is what to type to see the limiter at work: one request, then more than most
// limits allow.
func (s *Server) try() []string {
	to := "http://" + s.Addr().String()
	if s.config.TLS.On() {
		to = "https://" + s.Addr().String()
	}
	ask := "'" + to + "/'"
	if !s.inFront() {
		body := `{"attributes":{"ip:address":"192.0.2.1","method":"GET","path":"/"}}`
		if s.config.Policy == "" { // the example
			body = `{"attributes":{"header:x-api-key":"k1"}}`
		}
		ask = "--json '" + body + "' " + "'" + to + "/v1/take?status=429'"
	}
	return []string{
		"curl -i " + ask,
		`for i in $(seq 40); do curl -s -o /dev/null -w '%{http_code}\n' ` + ask + "; done",
	}
}
