// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"

	"github.com/metehq/mete/envoyapi/dropin"
)

// newDebugHandler returns the pages of the debug port.
func newDebugHandler(service *dropin.Service, profiles bool) http.Handler {
	mux := http.NewServeMux()
	index := "/rlconfig: print the configuration\n/stats: print the counters\n"
	mux.HandleFunc("GET /rlconfig", func(w http.ResponseWriter, _ *http.Request) {
		if c := service.Config(); c != nil {
			_, _ = io.WriteString(w, c.Dump())
		}
	})
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		for _, c := range service.Counters() {
			fmt.Fprintf(w, "%s: %d\n", c.Name, c.Value)
		}
	})
	if profiles {
		index = "/debug/pprof/: profiles\n" + index
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, index) })
	return mux
}
