// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/metehq/mete/httplimit"
)

// newChi returns a chi router. Wrap already has the type of chi middleware.
func newChi() http.Handler {
	router := chi.NewRouter()
	router.Use(httplimit.PerAddress("100/1m", 20).Wrap)
	router.Get("/", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) })
	return router
}
