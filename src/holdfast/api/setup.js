// A one-time link keeps its secret behind the #: browsers send that part to no server, so no log has it.
function send() {
  const [name, secret] = location.hash.slice(1).split("=");
  if (!secret || name !== "token") return;
  history.replaceState(null, "", location.pathname);
  const form = document.createElement("form"), field = document.createElement("input");
  [form.method, field.type, field.name, field.value] = ["post", "hidden", name, secret];
  form.append(field);
  document.body.append(form);
  form.submit();
}
// A second link opened in the same tab changes the fragment only and loads nothing.
addEventListener("hashchange", send);
send();
