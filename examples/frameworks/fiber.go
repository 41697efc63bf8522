// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"

	"github.com/metehq/mete/httplimit"
)

// newFiber returns a fiber app. The adaptor of fiber converts each request to net/http and copies the headers back.
func newFiber() *fiber.App {
	app := fiber.New()
	app.Use(adaptor.HTTPMiddleware(httplimit.PerAddress("100/1m", 20).Wrap))
	app.Get("/", func(c fiber.Ctx) error { return c.SendString("hello") })
	return app
}
