// The certified identity provider of the tests: one client, and users whose names say what they may do.
import Provider from 'oidc-provider';

const [redirectUri] = process.argv.slice(2);
const groups = { ada: ['archive-admins', 'staff'], otto: ['archivists'], mona: ['staff'], eve: ['visitors'] };

const server = (await import('node:http')).createServer();
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [{
      client_id: 'holdfast',
      client_secret: 'a secret of the tests: &=+%',
      redirect_uris: [redirectUri],
      response_types: ['code'],
      grant_types: ['authorization_code'],
    }],
    pkce: { required: () => true },
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
    features: { devInteractions: { enabled: true } },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id, groups: groups[id] ?? [] }),
    }),
    cookies: { keys: ['a key of the tests'] },
    ttl: { AccessToken: 60, AuthorizationCode: 60, IdToken: 60, Interaction: 60, Session: 60, Grant: 60 },
  });
  server.on('request', provider.callback());
  console.log(port);
});
