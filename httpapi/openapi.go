// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
)

// openAPIText describes every endpoint, including the admin address. Tests compare it with the handlers.
//
//go:embed openapi.json
var openAPIText []byte

// openAPI is openAPIText with the override actions of package policy inserted.
var openAPI = func() []byte {
	var words []string
	for _, kind := range policy.Actions() {
		words = append(words, strconv.Quote(string(kind.Action)))
	}
	return bytes.Replace(openAPIText, []byte(`"$override-actions"`), []byte(strings.Join(words, ", ")), 1)
}()

var openAPITag = func() string {
	sum := sha256.Sum256(openAPI)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}()

// serveOpenAPI serves /openapi.json. It needs no role, because the source is public.
func (a *API) serveOpenAPI(w http.ResponseWriter, r *http.Request) *api.Problem {
	h := w.Header()
	h["Etag"] = []string{openAPITag}
	h["Cache-Control"] = []string{"no-cache"} // clients must revalidate
	if known := r.Header.Get("If-None-Match"); known == "*" || strings.Contains(known, openAPITag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h["Content-Type"] = typeJSON
	w.WriteHeader(http.StatusOK)
	w.Write(openAPI) // ignore a client that is gone
	return nil
}
