// Shows the API's OpenAPI document with Swagger UI.
SwaggerUIBundle({ url: "openapi.json", dom_id: "#docs", deepLinking: true, validatorUrl: null });
