/** The build puts a .csv file's text into the file that imports it. */
declare module "*.csv" {
  const text: string;
  export default text;
}
