// A one-time link keeps its secret behind the #: browsers send that part to no server, so no log has it. This tab keeps
// it until the link is spent: a page that is loaded again, or in another language, goes on where it was.
function send(secret) {
  const form = document.createElement("form"), field = document.createElement("input");
  [form.method, form.action, field.type, field.name, field.value] = ["post", "/setup", "hidden", "token", secret];
  form.append(field);
  document.body.append(form);
  form.submit();
}
function start() {
  const [name, secret] = location.hash.slice(1).split("=");
  if (secret && name === "token") {
    sessionStorage.setItem("link", secret);
    history.replaceState(null, "", location.pathname);
    send(secret);
  } else if (document.getElementById("token") && sessionStorage.getItem("link")) {
    send(sessionStorage.getItem("link"));
  } else if (!document.querySelector("form[action='/setup']")) {
    sessionStorage.removeItem("link");
  }
}
// A second link opened in the same tab changes the fragment only and loads nothing.
addEventListener("hashchange", start);
start();
