/* The screen decides between light and dark at every visit: the theme would keep what it was at the first one. */
try {
  Object.keys(localStorage).filter(key => key.endsWith(".__palette")).forEach(key => localStorage.removeItem(key))
} catch {
  // storage is forbidden: nothing was kept
}
