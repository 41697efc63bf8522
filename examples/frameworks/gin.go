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
		admission, ok := limited.Admit(c.Writer, c.Request)
		if !ok {
			c.Abort()
			return
		}
		// Run is for limits with charge_on, which depend on the response.
		admission.Run(c.Request, func() httplimit.Response {
			c.Next()
			return httplimit.Response{Status: c.Writer.Status(), Header: c.Writer.Header(), Bytes: int64(c.Writer.Size())}
		})
	})
	engine.GET("/", func(c *gin.Context) { c.String(http.StatusOK, "hello") })
	return engine
}
