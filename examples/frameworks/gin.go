// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/metehq/mete/httplimit"
)

// newGin returns a gin engine. Admit responds to denied requests, and Abort skips their handlers.
func newGin() http.Handler {
	limited := httplimit.PerAddress("100/1m", 20)
	engine := gin.New()
	engine.Use(func(c *gin.Context) {
		if !limited.Admit(c.Writer, c.Request) {
			c.Abort()
		}
	})
	engine.GET("/", func(c *gin.Context) { c.String(http.StatusOK, "hello") })
	return engine
}
