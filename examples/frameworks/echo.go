// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/metehq/mete/httplimit"
)

// newEcho returns an echo server. echo can wrap net/http middleware.
func newEcho() http.Handler {
	server := echo.New()
	server.Use(echo.WrapMiddleware(httplimit.PerAddress("100/1m", 20).Wrap))
	server.GET("/", func(c *echo.Context) error { return c.String(http.StatusOK, "hello") })
	return server
}
