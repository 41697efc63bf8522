module github.com/metehq/mete/jwtclaims

go 1.26.0

require (
	github.com/MicahParks/jwkset v0.11.3
	github.com/MicahParks/keyfunc/v3 v3.9.0
	github.com/golang-jwt/jwt/v5 v5.3.1
	github.com/metehq/mete v0.0.0
)

require golang.org/x/time v0.15.0 // indirect

replace github.com/metehq/mete => ../
