// A provider of single sign-on for the tests: any name and password sign in, as the account of that name.
import http from "node:http";
import Provider from "oidc-provider";

const server = http.createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const client = {
    client_id: "tacit",
    token_endpoint_auth_method: "none",
    redirect_uris: ["https://test/sign-in/callback"],
    grant_types: ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
    response_types: ["code"],
  };
  const provider = new Provider(issuer, {
    clients: [client],
    claims: { openid: ["sub"], email: ["email", "email_verified"] },
    conformIdTokenClaims: false,
    features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true } },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: id, email_verified: true }) }),
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
