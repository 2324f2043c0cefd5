// Says where it runs. Try: glovebox run examples/hello.js
const os = require("node:os");

console.log(`Hello from Node.js ${process.version} in a sandbox!`);
console.log(`I am ${os.userInfo().username} in ${process.cwd()} with ${os.cpus().length} CPUs to see.`);
