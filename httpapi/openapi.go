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

// openAPI describes every endpoint of a server, those of the other address
// included: OpenAPI 3.1. Tests hold it against what is served.
//
//go:embed openapi.json
var openAPIText []byte

// openAPI has the actions of overrides in the place of their mark: package policy owns them.
var openAPI = func() []byte {
	var words []string
	for _, kind := range policy.Actions() {
		words = append(words, strconv.Quote(string(kind.Action)))
	}
	return bytes.Replace(openAPIText, []byte(`"$override-actions"`), []byte(strings.Join(words, ", ")), 1)
}()

// openAPITag changes when the document does.
var openAPITag = func() string {
	sum := sha256.Sum256(openAPI)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}()

// describe serves /openapi.json. It is public: everybody has the source.
func (a *API) describe(w http.ResponseWriter, r *http.Request) *api.Problem {
	h := w.Header()
	h["Etag"] = []string{openAPITag}
	h["Cache-Control"] = []string{"no-cache"} // ask whether it is still the same
	if known := r.Header.Get("If-None-Match"); known == "*" || strings.Contains(known, openAPITag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h["Content-Type"] = typeJSON
	w.WriteHeader(http.StatusOK)
	w.Write(openAPI) // a client that has gone needs no answer
	return nil
}
