using System.Runtime.CompilerServices;

[assembly: InternalsVisibleTo("tests")]
