// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/metehq/mete/api"
)

// checkSender rejects requests that no API client sends, so that web pages in a browser cannot spend tokens.
func (a *API) checkSender(w http.ResponseWriter, r *http.Request) *api.Problem {
	if err := a.browsers.Check(r); err != nil {
		return api.NewProblem(http.StatusForbidden, "pages of other origins cannot use this API; call it from a server")
	}
	if sent := r.Header["Content-Encoding"]; len(sent) > 0 && !(len(sent) == 1 && strings.EqualFold(sent[0], "identity")) {
		w.Header()["Accept-Encoding"] = []string{"identity"} // RFC 9110 §15.5.16
		return api.NewProblem(http.StatusUnsupportedMediaType, "the body must not be compressed; send it without Content-Encoding")
	}
	switch sent := r.Header["Content-Type"]; {
	case len(sent) == 0, len(sent) == 1 && (sent[0] == "" || sent[0] == "application/json"):
		return nil
	case len(sent) == 1:
		return checkMedia(sent[0])
	}
	return api.NewProblem(http.StatusUnsupportedMediaType, "duplicate Content-Type; send only application/json")
}

func checkMedia(sent string) *api.Problem {
	media, params, err := mime.ParseMediaType(sent)
	if err != nil || media != "application/json" {
		return api.NewProblem(http.StatusUnsupportedMediaType, "the body must be JSON; send it with Content-Type: application/json")
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return api.NewProblem(http.StatusUnsupportedMediaType, fmt.Sprintf("unsupported charset %.40q; send JSON in UTF-8", charset))
	}
	return nil
}
